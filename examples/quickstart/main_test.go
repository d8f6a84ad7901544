package main

func Example() {
	main()
	// Output:
	// relative error of the product: 0.0367
	// activations: amax 4.637973308563232, saturated 0, flushed to zero 0 of 8192
}
