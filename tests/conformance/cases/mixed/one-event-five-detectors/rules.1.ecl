monitor first = repeat { push(e1) { a } }
