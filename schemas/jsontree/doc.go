// Package jsontree parses JSON texts to trees that keep the order of members and the text of numbers, as violations need them.
package jsontree
