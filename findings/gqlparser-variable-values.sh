#!/usr/bin/env bash
# gqlparser v2.5.64 (github.com/vektah/gqlparser/v2), package validator. Needs Go.
#
# What happens: what VariableValues takes depends on how the caller's JSON decoder represents numbers. With float64 the number 1 for a String is
# refused and 1.0 for an Int taken, as the specification says (October 2021, 3.5). With json.Number, which keeps whole numbers beyond 2^53
# exact, it is the other way round: 1 is taken as a String, 1.5 as an ID, and 1.0 is refused as an Int ("cannot use value 0"). A text "1" for an
# Int or a Float and a whole number of more than 32 bits for an Int are taken with both. Default values of the fields of an input object are
# not filled in, though the specification (6.1.2, 3.10) has them in the coerced value; those of the operation's own variables are.
# A query in which a number is followed by a name at once (`a: 1b: 2`) parses, though the grammar forbids it.
#
# Output seen (EXPECTED):
#   String 1: float64 refused, json.Number taken
#   ID 1.5: float64 refused, json.Number taken
#   Int 1.0: float64 taken, json.Number refused
#   Int "1": float64 taken, json.Number taken
#   Int 3000000000: float64 taken, json.Number taken
#   input I { a: Int! = 3 } with {}: map[]
#   {f(a:1b:2)}: parsed
#
# Ends with an error if one of the lines is another one.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
export GOFLAGS=-mod=mod CGO_ENABLED=0
expected=$(sed -n '/^# Output seen/,/^#$/s/^#   //p' "$0")
cd "$dir"
cat >main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
)

var schema = gqlparser.MustLoadSchema(&ast.Source{Input: `
input I { a: Int! = 3 }
type Query { f(a: Int, b: Int, s: String, id: ID, in: I): Int }`})

// coerce returns the coerced variable v of a query, and whether it was taken.
func coerce(query, variables string, exact bool) (any, string) {
	op := gqlparser.MustLoadQuery(schema, query).Operations[0]
	decoder := json.NewDecoder(strings.NewReader(variables))
	if exact {
		decoder.UseNumber()
	}
	var given map[string]any
	if err := decoder.Decode(&given); err != nil {
		panic(err)
	}
	values, err := validator.VariableValues(schema, op, given)
	if err != nil {
		return nil, "refused"
	}
	return values["v"], "taken"
}

func main() {
	for _, c := range [][3]string{{"String", "1", "s"}, {"ID", "1.5", "id"}, {"Int", "1.0", "a"}, {"Int", `"1"`, "a"}, {"Int", "3000000000", "a"}} {
		query, variables := fmt.Sprintf("query($v: %s) { f(%s: $v) }", c[0], c[2]), `{"v":`+c[1]+`}`
		_, float := coerce(query, variables, false)
		_, number := coerce(query, variables, true)
		fmt.Printf("%s %s: float64 %s, json.Number %s\n", c[0], c[1], float, number)
	}
	filled, _ := coerce("query($v: I) { f(in: $v) }", `{"v":{}}`, false)
	fmt.Println("input I { a: Int! = 3 } with {}:", filled)
	if _, err := gqlparser.LoadQuery(schema, "{f(a:1b:2)}"); err == nil {
		fmt.Println("{f(a:1b:2)}: parsed")
	}
}
GO
go mod init client 2>/dev/null
go get github.com/vektah/gqlparser/v2@v2.5.64 2>/dev/null
go mod tidy 2>/dev/null
go run . | tee output
diff <(echo "$expected") output || {
  echo "the behaviour has changed" >&2
  exit 1
}
