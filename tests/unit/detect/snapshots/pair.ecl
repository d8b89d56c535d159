first = (type = 'a')
monitor pair by k = repeat { push(pair) { sequential { first and (k >= 0), b } } }
