"""simt"""
