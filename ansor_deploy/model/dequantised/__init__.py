"""What lies between DequantizeLinear and QuantizeLinear, computed on bytes."""
