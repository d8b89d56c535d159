monitor starts by job = repeat { push(begun, prio: prio) { sequential { queued, run } } }
