// Package testkit has the test doubles for tests and the demo: in-process servers that speak Song's and Lyric's protocols with fault
// injection, and a fault proxy. It contains no rules of the product. Only tests and the demo may import it; of tutti it must import only
// internal/tools/testkit/dataset, which imports nothing, so that bugs of the product are not repeated in its tests.
package testkit
