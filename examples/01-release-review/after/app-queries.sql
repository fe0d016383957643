-- What version 2.0 does to the database.

-- name: list newest orders
SELECT id, customer_id, status, hold_reason, channel, currency, note, created_at
FROM orders
ORDER BY created_at DESC, id DESC
LIMIT 50;

-- name: place order
INSERT INTO orders (customer_id, channel, currency, note, created_at)
VALUES (7, 'app', 'EUR', 'Second floor', '2025-04-30 12:00:00')
RETURNING id, status;

-- name: put order on hold
UPDATE orders SET status = 'on_hold', hold_reason = 'address cannot be verified' WHERE id = 40 RETURNING id;

-- name: ship order
INSERT INTO shipments (order_id, carrier, tracking_code, shipped_at)
VALUES (41, 'Northern Parcel', 'NP-000041', '2025-04-30 15:30:00')
RETURNING id;

-- name: parcels of an order
SELECT carrier, tracking_code, shipped_at FROM shipments WHERE order_id = 42 ORDER BY id;
