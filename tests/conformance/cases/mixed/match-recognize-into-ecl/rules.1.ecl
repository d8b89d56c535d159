monitor pairs = repeat { push(pair, n: n) { sequential { dip, dip } } }
