//go:build race

package app_test

import "time"

// startLimit is how long a start may take without its engine; the race detector slows everything down.
const startLimit = 3 * time.Second
