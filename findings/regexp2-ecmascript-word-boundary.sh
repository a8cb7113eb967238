#!/usr/bin/env bash
# github.com/dlclark/regexp2 v1.12.0, option ECMAScript. Needs Go.
#
# What happens: the option makes \w the 63 ASCII characters of ECMA-262, but \b and \B go on using the word characters of .NET, which have all
# letters of Unicode. So an expression disagrees with itself: in "école" no character before the c is a \w, and yet \bcole does not match,
# while é\b matches "é". ECMA-262 defines \b by \w, and V8 answers the opposite in all three cases. The dot takes U+2028 too, which ECMA-262
# counts among the line terminators, although the option makes it refuse a carriage return. Write both as look-arounds and classes before the
# library sees them.
#
# Output seen (EXPECTED), with what V8 of Node.js 20 answers without flags:
#   ^\w+$ on "é": false, V8 false
#   \bcole on "école": false, V8 true
#   \Bcole on "école": true, V8 false
#   é\b on "é": true, V8 false
#   ^.$ on "\u2028": true, V8 false
#   ^.$ on "\r": false, V8 false
#
# Ends with an error if an answer is another one.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
export GOFLAGS=-mod=mod CGO_ENABLED=0
cd "$dir"
cat >main.go <<'GO'
package main

import (
	"fmt"
	"log"

	"github.com/dlclark/regexp2"
)

func main() {
	changed := false
	for _, c := range []struct {
		pattern, text string
		want, v8      bool
	}{
		{`^\w+$`, "é", false, false},
		{`\bcole`, "école", false, true},
		{`\Bcole`, "école", true, false},
		{`é\b`, "é", true, false},
		{`^.$`, "\u2028", true, false},
		{`^.$`, "\r", false, false},
	} {
		got, err := regexp2.MustCompile(c.pattern, regexp2.ECMAScript).MatchString(c.text)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s on %q: %t, V8 %t\n", c.pattern, c.text, got, c.v8)
		changed = changed || got != c.want
	}
	if changed {
		log.Fatal("the behaviour has changed")
	}
}
GO
go mod init client 2>/dev/null
go get github.com/dlclark/regexp2@v1.12.0 2>/dev/null
go run .
