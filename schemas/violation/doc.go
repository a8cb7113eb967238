// Package violation collects what is wrong in a document, and formats the parts of it that messages quote.
package violation
