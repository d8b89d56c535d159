-- MR-36, section 11: a partition with no undecided row is forgotten, and begins anew with its next row. At the end it has the turn
-- of that row: x (4000), y (4500), w (5200), z (5400), though z was there before y and w
SELECT * FROM ev MATCH_RECOGNIZE (
  PARTITION BY k ORDER BY time MEASURES COUNT(*) AS n
  PATTERN (A+) WITHIN 2 SECONDS DEFINE A AS v > 0) AS burst
