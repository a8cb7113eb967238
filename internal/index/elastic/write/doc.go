// Package write writes documents with bulk requests. It encodes them, decodes the results, extends mappings for new fields, and
// checks whether an alias accepts writes.
package write
