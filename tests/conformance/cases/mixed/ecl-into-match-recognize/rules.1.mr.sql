-- rows are detections of another language, each of which ends with the event that makes it: an open end decides them when the clock has left them
SELECT * FROM high MATCH_RECOGNIZE (ORDER BY time MEASURES FIRST(v) AS a, LAST(v) AS b PATTERN (A B) DEFINE B AS B.v > A.v) AS rise
