-- counts and sums
SELECT city, count(*) AS n, count(amount) AS c, sum(amount) AS s FROM orders GROUP BY city;

-- averages
SELECT city, avg(amount) AS a, avg(customer) AS b, sum(amount) + count(*) AS m FROM orders GROUP BY city;

-- filters
SELECT city, count(*) FILTER (WHERE paid) AS n, sum(amount) FILTER (WHERE paid) AS s FROM orders GROUP BY 1;

-- bool
SELECT city, bool_and(paid) AS x, bool_or(paid) AS y FROM orders GROUP BY city;

-- extremes
SELECT city, min(amount) AS lo, max(amount) AS hi FROM orders GROUP BY city;

-- distinct counts
SELECT city, count(DISTINCT customer) AS n, sum(amount) AS s FROM orders GROUP BY city;

-- hidden keys
SELECT sum(amount) AS s FROM orders GROUP BY city, paid;

-- expression keys
SELECT upper(city) AS u, count(*) AS n FROM orders GROUP BY upper(city);

-- of everything
SELECT count(*) AS n, sum(amount) AS s, avg(amount) AS a FROM orders WHERE paid;

-- extremes of everything
SELECT min(amount) AS lo, max(amount) AS hi FROM orders;

-- distinct
SELECT DISTINCT city, paid FROM orders;

-- over a join
SELECT c.name, sum(o.amount) AS s FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.name;

-- having
SELECT city, sum(amount) AS s FROM orders GROUP BY city HAVING count(*) > 1;

-- of groups
SELECT n, count(*) AS m FROM (SELECT city, count(*) AS n FROM orders GROUP BY city) GROUP BY n;

-- rollup
SELECT city, paid, count(*) AS n FROM orders GROUP BY ROLLUP (city, paid);

-- top
SELECT city, sum(amount) AS s FROM orders GROUP BY city ORDER BY s DESC LIMIT 2;

-- top rows
SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 3;

-- window
SELECT id, city, row_number() OVER (PARTITION BY city ORDER BY amount, id) AS r FROM orders;

-- window without its partition
SELECT id, rank() OVER (PARTITION BY city ORDER BY amount) AS r FROM orders;

-- first of each
SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY city ORDER BY id) AS r FROM orders) WHERE r = 1;

-- a subquery
SELECT id FROM orders WHERE amount > (SELECT avg(amount) FROM orders);

-- a correlated subquery
SELECT id FROM orders o WHERE amount >= (SELECT max(amount) FROM orders p WHERE p.city = o.city);

-- left join
SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.id;

-- not in
SELECT id FROM orders WHERE customer NOT IN (SELECT id FROM customers WHERE credit > 0);

-- union
SELECT city FROM orders UNION SELECT city FROM customers;

-- bags
SELECT city FROM visits EXCEPT ALL SELECT city FROM orders;
