-- 90 customers, 260 orders, 521 items: the same on every run.
WITH RECURSIVE
  numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 90),
  first_names (i, name) AS (
    VALUES (0, 'Amara'), (1, 'Bruno'), (2, 'Chen'), (3, 'Daria'), (4, 'Elif'), (5, 'Farid'),
           (6, 'Greta'), (7, 'Hiro'), (8, 'Ines'), (9, 'Jonas')
  ),
  last_names (i, name) AS (
    VALUES (0, 'Okafor'), (1, 'Rossi'), (2, 'Wang'), (3, 'Novak'), (4, 'Demir'), (5, 'Haddad'),
           (6, 'Lindqvist'), (7, 'Sato'), (8, 'Moreira')
  )
INSERT INTO customers (id, name, email, phone, created_at)
SELECT
  n,
  first_names.name || ' ' || last_names.name,
  lower(first_names.name || '.' || last_names.name) || n || '@example.com',
  CASE WHEN n % 3 = 0 THEN printf('+49 30 555 %04d', n * 37) END,
  datetime('2024-01-01', printf('+%d hours', n * 29))
FROM numbers
JOIN first_names ON first_names.i = n % 10
JOIN last_names ON last_names.i = n % 9;

WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 260)
INSERT INTO orders (id, customer_id, status, currency, note, created_at)
SELECT
  n,
  1 + (n * 17) % 90,
  CASE n % 8 WHEN 0 THEN 'pending' WHEN 1 THEN 'paid' WHEN 2 THEN 'shipped' WHEN 7 THEN 'cancelled' ELSE 'delivered' END,
  CASE n % 5 WHEN 0 THEN 'USD' WHEN 1 THEN 'CHF' ELSE 'EUR' END,
  CASE n % 6 WHEN 0 THEN 'Leave with the neighbour' WHEN 3 THEN 'Ring twice, please' END,
  datetime('2025-03-01', printf('+%d minutes', n * 197))
FROM numbers;

INSERT INTO order_items (order_id, line, sku, quantity, unit_price_cents)
SELECT
  orders.id,
  lines.line,
  printf('SKU-%03d', (orders.id * 7 + lines.line * 31) % 140),
  1 + (orders.id + lines.line) % 4,
  495 + (orders.id * 83 + lines.line * 410) % 12000
FROM orders
JOIN (SELECT 1 AS line UNION ALL SELECT 2 UNION ALL SELECT 3) AS lines ON lines.line <= 1 + orders.id % 3;
