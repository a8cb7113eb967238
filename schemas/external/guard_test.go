package external

import (
	"net/netip"
	"testing"
)

func TestPublicAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"1.1.1.1": true, "2606:4700::1111": true, "64:ff9b::101:101": true, "8.8.8.8": true,
		"10.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false, "127.0.0.1": false, "127.8.0.1": false, "0.0.0.0": false,
		"169.254.169.254": false, "100.64.0.1": false, "100.100.100.200": false, "224.0.0.1": false, "255.255.255.255": false,
		"192.0.0.192": false, "::ffff:100.64.0.1": false, "::ffff:1.1.1.1": true, "198.18.0.1": false, "168.63.129.16": false,
		"::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false,
		"::ffff:10.0.0.1": false, "64:ff9b::a9fe:a9fe": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "::7f00:1": false, "fec0::1": false,
	} {
		t.Run(address, func(t *testing.T) {
			if got := isPublic(netip.MustParseAddr(address)); got != want {
				t.Errorf("public %t, want %t", got, want)
			}
		})
	}
}
