"""What is between DequantizeLinear and QuantizeLinear, computed on bytes."""
