monitor twice by who =
    repeat { do { push(gone, seen: time) { sequential { Away, Away } } } unless { reset } }
