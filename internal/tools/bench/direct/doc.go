// Package direct calls servers without tutti's own clients: requests under load, an engine's bulk writes and searches, and jobs.
package direct
