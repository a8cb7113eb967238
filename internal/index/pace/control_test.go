package pace

import (
	"testing"
	"time"
)

// times returns a window of n probes that take the given milliseconds each, but the slowest fifth, which takes ten times as long.
func times(ms int) []time.Duration {
	list := make([]time.Duration, 15)
	for i := range list {
		list[i] = time.Duration(ms) * time.Millisecond
		if i >= 12 {
			list[i] *= 10
		}
	}
	list[12] = time.Duration(ms) * time.Millisecond // the percentile
	return list
}

// TestControl: the rate grows while probes are as fast as at rest, falls when they are slower, and stays within its bounds.
func TestControl(t *testing.T) {
	var c control
	c.rest(times(10))
	if c.base != 10*time.Millisecond || c.rate != firstRate {
		t.Fatalf("at first %+v", c)
	}
	for _, step := range []struct {
		what string
		ms   int
		used float64
		want float64
	}{
		{"as fast", 10, 500, 750},
		{"a fifth slower is allowed", 12, 750, 1125},
		{"slower", 13, 1125, 1125 * decrease},
		{"as fast after that", 10, 787.5, 787.5 * increase},
		{"less is used than allowed", 10, 300, 787.5 * increase},
		{"slower while less is used", 13, 700, 490},
		{"the lowest rate", 50, 410, minRate},
	} {
		c.window(times(step.ms), step.used)
		if diff := c.rate - step.want; diff > 1e-6 || diff < -1e-6 {
			t.Errorf("%s: rate %v, want %v", step.what, c.rate, step.want)
		}
	}
	c.rest(times(100))
	if c.base != 100*time.Millisecond || c.rate != firstRate {
		t.Errorf("after another rest %+v", c)
	}
	c = control{base: time.Millisecond, rate: 1000}
	if c.window(times(1), 1000); c.met {
		t.Error("a probe within the noise counts as slower")
	}
}
