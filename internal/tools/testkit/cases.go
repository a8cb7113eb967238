package testkit

import (
	"fmt"
	"os"
	"strconv"
)

// casesVariable is a factor for the number of random cases; make chaos sets it.
const casesVariable = "TUTTI_TEST_CASES"

// Cases returns the number of random cases that a test runs when n are usual: n times the number in TUTTI_TEST_CASES, and a tenth of
// that, but at least one, under the race detector, where a case takes about ten times as long and only its interleavings are new.
func Cases(n int) int {
	if held := os.Getenv(casesVariable); held != "" {
		factor, err := strconv.Atoi(held)
		if err != nil || factor < 1 {
			panic(fmt.Sprintf("%s is not a positive number: %q", casesVariable, held))
		}
		n *= factor
	}
	if raceDetector {
		n = max(1, n/10)
	}
	return n
}
