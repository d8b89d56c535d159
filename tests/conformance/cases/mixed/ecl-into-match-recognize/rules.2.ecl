monitor highs = repeat { push(high, v: v) { tick and v > 10 } }
