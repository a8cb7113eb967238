// Package execute sends the requests of a plan to the index, and writes documents while the index reads them.
package execute
