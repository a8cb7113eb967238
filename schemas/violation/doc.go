// Package violation collects the violations of a document, and formats what their messages quote.
package violation
