package quantity_test

import (
	"testing"

	"github.com/wasmproxy/wasmproxy/sdk/internal/vectors"
	"github.com/wasmproxy/wasmproxy/sdk/quantity"
)

func TestVectors(t *testing.T) {
	for _, v := range vectors.Load(t, "..").Quantity {
		for _, unit := range []struct {
			name string
			read func(string) (int64, error)
			want int64
		}{{"Value", quantity.Value, v.Value}, {"Milli", quantity.Milli, v.Milli}} {
			got, err := unit.read(v.Text)
			if err != nil && err.Error() != v.Error || err == nil && v.Error != "" || got != unit.want {
				t.Errorf("%s of %q: got %d, %v; want %d, %s", unit.name, v.Text, got, err, unit.want, v.Error)
			}
		}
	}
}

func TestDecimals(t *testing.T) {
	for _, v := range vectors.Load(t, "..").Decimal {
		got, err := quantity.Decimal(v.Text, v.Decimals)
		if err != nil && err.Error() != v.Error || err == nil && v.Error != "" || got != v.Value {
			t.Errorf("%q with %d decimals: got %d, %v; want %d, %s", v.Text, v.Decimals, got, err, v.Value, v.Error)
		}
	}
}
