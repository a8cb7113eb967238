// Package read reads documents for indexing: single ones, counts, and scans of versions.
package read
