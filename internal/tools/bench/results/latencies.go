package results

import "time"

// Rate returns how many of n are done per second if all took a time.
func Rate(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }

// AddLatencies adds the median, the 99th percentile and the maximum, which may have a target each.
func AddLatencies(report *Report, what string, ms []float64, targets [3]*Target) {
	for i, at := range []struct {
		name string
		q    float64
	}{{"p50", 0.5}, {"p99", 0.99}, {"max", 1}} {
		report.Add(Figure{Name: what + ", " + at.name + ", ms", Values: []float64{QuantileUp(ms, at.q)}, Target: targets[i]})
	}
}
