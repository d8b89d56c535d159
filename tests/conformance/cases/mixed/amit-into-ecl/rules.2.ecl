# one quote may be both up and big: up comes first, as it is defined first
monitor ordered by symbol = repeat { push(jump) { sequential { up, big } } }
monitor reversed by symbol = repeat { push(jumps) { sequential { big, up } } }
monitor itself by symbol = repeat { push(pair) { sequential { quote, up } } }
