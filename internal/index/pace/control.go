package pace

import (
	"slices"
	"time"
)

// Bounds of the control.
const (
	// slower is how much slower probes may become, and noise what they may become slower by at least.
	slower = 1.2
	noise  = 750 * time.Microsecond
	// firstRate is the rate, in rows a second, with which runs begin, and faster how it grows until probes are slower for the first time.
	firstRate, faster = 500, 1.5
	// decrease and increase change the rate later, after a window with slower probes and after one without.
	decrease, increase = 0.7, 1.1
	// minRate is the lowest rate: a run always goes on, and no row of a page becomes too old to be written.
	minRate = 400
)

// control decides the rate of runs by how long probes take.
type control struct {
	// rate is in rows a second, 0 for no limit.
	rate float64
	// base is the high quantile of the probes while runs rest.
	base time.Duration
	// met is set once probes were slower.
	met bool
}

// high returns the 80th percentile of times, which it sorts.
func high(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)*8/10]
}

// rest begins anew with what was measured while runs rest. It keeps the rate.
func (c *control) rest(times []time.Duration) {
	c.base, c.rate = high(times), max(c.rate, firstRate)
}

// window changes the rate by the times of probes while rows passed at the rate used.
func (c *control) window(times []time.Duration, used float64) {
	switch {
	case high(times) > c.base+max(noise, time.Duration(float64(c.base)*(slower-1))):
		c.met, c.rate = true, max(minRate, min(c.rate, used)*decrease)
	case 2*used < c.rate: // something else is slower than the limit
	case c.met:
		c.rate *= increase
	default:
		c.rate *= faster
	}
}
