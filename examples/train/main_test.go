package main

func Example() {
	main()
	// Output:
	// step 0: loss 2.9684
	// step 10: loss 0.7564
	// step 20: loss 0.4410
	// step 30: loss 0.2969
	// in the end: loss 0.2326, 290 of 300 characters right
}
