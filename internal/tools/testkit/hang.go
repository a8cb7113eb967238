package testkit

import "time"

// HangLimit is the time after which a test takes something for hung: a request, a stop, a condition that it waits for. It makes no claim about
// speed, so it is far longer than any of them takes on a machine with ten times as much work as cores.
const HangLimit = 2 * time.Minute
