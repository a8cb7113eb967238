// Package write writes documents with bulk requests: encoding, outcomes, the extension of mappings for new fields, and the check whether an
// alias accepts writes.
package write
