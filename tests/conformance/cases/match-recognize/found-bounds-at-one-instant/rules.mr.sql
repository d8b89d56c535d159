-- Section 7: at one instant bounds pass in the order of their rows s. Those of y (id 3) and x (id 5) are due at 6000; the bound of a
-- row of x that was decided before (id 2) is none
SELECT * FROM ev MATCH_RECOGNIZE (
  PARTITION BY k ORDER BY time MEASURES COUNT(*) AS n
  PATTERN (A+) WITHIN 2 SECONDS DEFINE A AS v > 0) AS burst
