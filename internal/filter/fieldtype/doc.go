// Package fieldtype is the table of the search engines' types of fields: what the values of a type are, what can be done with them, and which
// engines have the type. Everything that treats one type unlike another asks it, so that filters, schemas, engines and guides agree.
package fieldtype
