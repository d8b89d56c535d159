# in the order of the files, but ECCO at the end of the instant
monitor now = repeat { push(order) { sequential { e1, e2, e3, e5, e4 } } }
monitor next = repeat { push(later) { sequential { e1, e2, e3, e4, e5 } } }
