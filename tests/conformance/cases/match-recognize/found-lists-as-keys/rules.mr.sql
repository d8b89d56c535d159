-- MR-1: a list counts as null, also a list of one value that comes before that value
SELECT * FROM e MATCH_RECOGNIZE (PARTITION BY k ORDER BY time MEASURES COUNT(*) AS n PATTERN (A+) DEFINE A AS true) AS m
