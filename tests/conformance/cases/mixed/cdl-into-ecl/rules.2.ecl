wide = type = 'pair' and gap > 3
monitor growing by k = repeat { push(grow, gap: gap) { sequential { pair, wide } } }
