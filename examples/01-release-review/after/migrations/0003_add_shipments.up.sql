CREATE TABLE shipments (
  id INTEGER PRIMARY KEY,
  order_id INTEGER NOT NULL REFERENCES orders (id),
  carrier TEXT NOT NULL,
  tracking_code TEXT NOT NULL UNIQUE,
  shipped_at TEXT
);

CREATE INDEX shipments_by_order ON shipments (order_id);

-- Parcels that left before tracking was recorded.
INSERT INTO shipments (order_id, carrier, tracking_code)
SELECT id, 'unknown', 'LEGACY-' || id FROM orders WHERE status IN ('shipped', 'delivered') ORDER BY id;
