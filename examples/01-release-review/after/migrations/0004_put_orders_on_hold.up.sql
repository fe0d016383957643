-- SQLite cannot change a CHECK in place: the table is built anew with the same rows.
CREATE TABLE orders_new (
  id INTEGER PRIMARY KEY,
  customer_id INTEGER NOT NULL REFERENCES customers (id),
  status TEXT NOT NULL DEFAULT 'pending'
    CHECK (status IN ('pending', 'on_hold', 'paid', 'shipped', 'delivered', 'cancelled')),
  currency TEXT NOT NULL,
  note TEXT,
  created_at TEXT NOT NULL,
  channel TEXT NOT NULL DEFAULT 'web',
  hold_reason TEXT
);

INSERT INTO orders_new (id, customer_id, status, currency, note, created_at)
SELECT id, customer_id, status, currency, note, created_at FROM orders;

DROP TABLE orders;
ALTER TABLE orders_new RENAME TO orders;
CREATE INDEX orders_by_customer ON orders (customer_id, created_at);
