-- whole numbers compare by all their digits: partitions, conditions, the least and the greatest
SELECT * FROM a MATCH_RECOGNIZE (
  ORDER BY time
  MEASURES MIN(k) AS least, MAX(k) AS most, FIRST(A.k) AS first_k, LAST(k) AS last_k, COUNT(*) AS n, MAX(k) - 1 AS less
  PATTERN (A B+) DEFINE A AS A.k = 9007199254740992, B AS B.k > PREV(B.k) OR B.k = 9223372036854775806) AS run;
SELECT * FROM b MATCH_RECOGNIZE (
  PARTITION BY k
  ORDER BY time
  MEASURES A.k AS key, CAST(A.k AS varchar) AS text
  PATTERN (A) DEFINE A AS A.k IN (9007199254740993, 9223372036854775807, -9223372036854775807, 7)) AS part;
SELECT * FROM b MATCH_RECOGNIZE (
  ORDER BY time
  MEASURES FIRST(U.k) AS low, LAST(V.k) AS high
  PATTERN (U V+) DEFINE V AS V.k < FIRST(U.k) AND V.k > 9007199254740992 AND MAX(V.k) < 9223372036854775807) AS below
