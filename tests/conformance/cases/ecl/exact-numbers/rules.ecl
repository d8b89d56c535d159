# whole numbers compare by all their digits, also as keys
monitor pair by k = repeat { push(pair) { sequential { a, b } } }
monitor one = repeat { push(hit) { k = 9007199254740993 } }
monitor low = repeat { push(low) { k < 9007199254740993 and k > -9223372036854775807 } }
monitor top = repeat { push(top) { k in (9223372036854775806, -9223372036854775808, 1.5) } }
monitor sum = repeat { push(sum) { k + 0 = 9007199254740992 } }
