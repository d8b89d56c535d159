# sees only the alarms that the limit of the other file lets through
monitor pairs by door = repeat { push(pair) { sequential { Alarm, Alarm } } }
