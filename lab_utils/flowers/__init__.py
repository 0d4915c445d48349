"""The finished example: photographs of five kinds of flower, from TFRecords to a served prediction."""
