// Package filter holds what a filter is, for all that ask an index: sqon is the language of clients, query the meaning of a filter for one
// catalogue's fields, which each engine carries out, and fieldtype the table of what a field's type can do on which engine. A new operator
// begins in sqon and gets its meaning in query; a new type of field is a row of fieldtype.
package filter
