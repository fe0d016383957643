-- What version 1.8 does to the database. It keeps running for up to 30 minutes while 2.0 is rolled out.

-- name: list newest orders
SELECT id, customer_id, status, currency, note, created_at
FROM orders
ORDER BY created_at DESC, id DESC
LIMIT 50;

-- name: order with items
SELECT orders.id, orders.status, order_items.line, order_items.sku, order_items.quantity, order_items.unit_price_cents
FROM orders
JOIN order_items ON order_items.order_id = orders.id
WHERE orders.id = 42
ORDER BY order_items.line;

-- name: orders of a customer
SELECT * FROM orders WHERE customer_id = 7 ORDER BY created_at;

-- name: customer by email
SELECT id, name, phone FROM customers WHERE email LIKE 'bruno.rossi%' ORDER BY id;

-- name: revenue by currency
SELECT orders.currency, sum(order_items.quantity * order_items.unit_price_cents) AS cents
FROM orders
JOIN order_items ON order_items.order_id = orders.id
WHERE orders.status <> 'cancelled'
GROUP BY orders.currency
ORDER BY orders.currency;

-- name: place order
INSERT INTO orders (customer_id, currency, note, created_at)
VALUES (7, 'EUR', 'Second floor', '2025-04-30 12:00:00')
RETURNING id, status;

-- name: add item
INSERT INTO order_items (order_id, line, sku, quantity, unit_price_cents)
VALUES (42, 9, 'SKU-001', 1, 1990);

-- name: cancel order
UPDATE orders SET status = 'cancelled' WHERE id = 42 AND status IN ('pending', 'paid') RETURNING id;
