// Package searchtest is the differential test suite of Index.Search and Index.Stream: it compares what an engine answers to the random
// requests of searchtest/draw with what searchtest/oracle does (CONTRACT sections 4 and 5), and what both answer to those of searchtest/cases
// with expected results. It is imported only by tests.
package searchtest
