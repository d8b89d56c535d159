failed = type = 'login' and ok = false
monitor guesses by user = repeat { push(guess, host: host) { sequential { failed, failed } } }
