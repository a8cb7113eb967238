// Package check probes everything that a configuration names: it connects to each service, examines each folder, and reports
// one line for each, with a hint where something is wrong. It creates no stream, index or topic and takes no lock. To test
// that a folder is writable, it creates a temporary file and removes it at once.
package check
