monitor m by k = parallel { repeat { push(x) { a } }, repeat { push(y, v: v) { sequential { a, b } } } }
