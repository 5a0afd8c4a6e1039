"""What the product costs, measured on lab hosts."""
