//go:build !race

package app_test

import "time"

// startLimit is how long a start may take without its engine.
const startLimit = time.Second
